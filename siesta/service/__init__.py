"""HTTP service around one learner, with a web page and a Python client."""
