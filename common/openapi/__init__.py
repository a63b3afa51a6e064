"""How the OpenAPI document is made: what views, serializers and ``openapi.py`` declare."""
