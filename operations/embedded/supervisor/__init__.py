"""The processes of `up`: start, watch, restart and stop them."""
