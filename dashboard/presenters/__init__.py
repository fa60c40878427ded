"""What the pages show: frozen values that views fill and templates read, so that no model reaches a template.

A view renders its template with `{"page": <presenter>}` and nothing else; every presenter of a whole page has a `frame`
(heading, breadcrumbs, environments, navigation). Moments are aware datetimes, counts are ints, texts are plain and
unescaped: templates escape them. One module a part of the site, the looks of states in `looks`.
"""
