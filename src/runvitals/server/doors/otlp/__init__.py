"""Receives metrics of OpenTelemetry: OTLP over HTTP and gRPC."""
