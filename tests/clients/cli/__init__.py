"""The command `zonal`."""
