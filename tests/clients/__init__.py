"""The clients, against a running platform."""
