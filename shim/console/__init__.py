"""The web console: a look into a cluster, as a client of it, so that it shows what the person's ACLs allow.

The page (`static/`) is files as they are; what it shows comes from `/api/...` as JSON, one file here for each noun.
"""
