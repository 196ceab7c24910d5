"""Hybrids: what scans cost and save beside attention, and why their pipelines split unevenly."""
