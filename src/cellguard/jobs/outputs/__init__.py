"""The outputs of a job: releases, manifest, audit file and ledger."""
