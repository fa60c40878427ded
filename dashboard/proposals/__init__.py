"""Proposed schemas: drafts, and the editor that checks and submits one."""
