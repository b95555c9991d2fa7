"""Google TPUs: the chips on the bus, and what the runtime tells of them by gRPC."""
