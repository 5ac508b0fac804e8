"""Incremental batch learners: a step's images are collected awake, and a network is trained on them asleep.

One file a method. `learner.py` is what they share: images and exemplars, steps, stages of training, costs and state.
"""
