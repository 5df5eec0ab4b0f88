"""The page for people who do not program: a thin shell over the job file and its run, served to this machine only.

A project is a folder with a job file. Every choice on the page is a line of that file; the run is the one of
``cellguard protect``, in a process of its own; what the page shows is read from what the run wrote.
"""

from cellguard.web.app import create_app

__all__ = ["create_app"]
