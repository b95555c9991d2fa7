"""Google TPUs: the chips on the PCI bus, and what the runtime reports through gRPC."""
