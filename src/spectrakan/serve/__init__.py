"""The local web page and its HTTP API."""
