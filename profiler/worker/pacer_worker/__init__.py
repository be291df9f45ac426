"""Trains a model with synthetic data under an execution plan and times it."""
