"""The web page for users who do not program: a thin layer over the job file and its run, for this machine only.

A project is a folder with a job file. Every choice on the page is a line of that file. The page runs the job like
``cellguard protect``, in a separate process, and shows what the run wrote.
"""

from cellguard.web.app import create_app

__all__ = ["create_app"]
