"""Formats of English, where Django's FORMAT_MODULE_PATH looks for them."""
