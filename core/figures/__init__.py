"""Figures: plain arrays and tables in, charts and pictures out, for the pages, for reports and for files.

What is here: `strip` (one dot an image), `curve` (one image's coverage and area against the threshold), `scores` (its
score histogram), `trade` (gap against area), `spread` (coverage over redrawn halves), `outlines` (sets drawn into a
picture), `export` (SVG and PNG). Nothing here calibrates, reads or caches; no chart knows a page. Import from the modules:
Altair is loaded by those that draw charts only.
"""
