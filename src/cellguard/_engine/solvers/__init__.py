"""HiGHS and SCIP, and the rows and cuts that are handed to them."""
