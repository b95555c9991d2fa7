"""OpenTelemetry: the names of its semantic conventions, and OTLP over HTTP."""
