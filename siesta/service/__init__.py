"""The service: a learner over HTTP, and in a browser."""
