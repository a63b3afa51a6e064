"""The OpenAPI document and the page made from it, both the same for every visitor."""
