"""The routes of the web server."""
