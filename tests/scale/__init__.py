"""What holds beyond one machine: `make test-scale` runs these tests, `make test` does not."""
