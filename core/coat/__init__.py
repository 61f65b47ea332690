"""COAT and AT: a threshold for each image, predicted from the image and its logit map, and the thresholds
they are measured by.
"""
