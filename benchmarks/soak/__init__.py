"""A whole installation under mixed load, whose processes are killed at random: `make soak`."""
