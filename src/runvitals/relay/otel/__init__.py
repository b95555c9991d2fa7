"""OpenTelemetry's side of the relay: names of its semantic conventions, and OTLP over HTTP."""
