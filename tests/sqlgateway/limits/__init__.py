"""Tests of an organization's own limits of SQL."""
