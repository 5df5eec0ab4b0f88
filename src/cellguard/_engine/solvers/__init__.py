"""HiGHS and SCIP, and the rows and cuts that they receive."""
