"""From a producer's list of tables to what must be protected together: merged tables, clusters, a job, a picture."""
