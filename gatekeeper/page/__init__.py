"""The live page: a gate's log in a browser or on a terminal, as it grows.

file            what it does
columns         a few bytes of each output
state           the fold over the log's events: counts, account, open and last outputs
follower        reads what has been appended since the last time
course          error rate and errors found, over the stream
charts          lines and bands as SVG
sections        the sections of the page, with the report's tables and numbers
processes       the section on the processes of a shared run
document        the whole page, one output, and their style sheet
watcher         follows the log and renders again when it has grown, for all readers together
access          who may read, and who may give verdicts
application     the routes, for aiohttp
server          a server for the page alone
terminal        the same figures with rich

The charts are SVG that the server draws: they need no script and no library, print, and take the
colours of the page. What reaches the browser is HTML, first as a page, then section by section as
server-sent events; each event is complete, so a connection that was lost loses nothing.
"""
