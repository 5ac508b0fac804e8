"""Sleep: the training loop with its budget and schedule, consolidation of a learner, background jobs and triggers."""
