"""The processes of `up`: started, watched, restarted and stopped."""
