"""Averages, variances, quantiles, histograms, covariances, with and without NaNs."""
