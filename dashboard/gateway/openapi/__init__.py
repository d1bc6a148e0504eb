"""The public API as one OpenAPI document, made from what is declared."""

from dashboard.gateway.openapi.document import document

__all__ = ["document"]
