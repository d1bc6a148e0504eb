"""Readings for other tools: Prometheus, Grafana, OpenTelemetry."""
