"""The pages of proposed schemas: drafts, and the editor that checks and submits one."""
