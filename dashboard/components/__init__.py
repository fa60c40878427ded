"""Parts shared by all pages: the frame, widgets, badges, links, text diffs, translation and time travel."""
