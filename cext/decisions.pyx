"""What a rule of a group decides. Contracts are in decisions.pyi."""

cimport cython

cdef enum:
    CANCEL = -1                 # of group/decision.py: the delay of a timer that is stopped


@cython.final
@cython.freelist(8)
cdef class Decision:
    cdef public list records
    cdef public bint replayed
    cdef public list changes
    cdef public list retries
    cdef public list replacements
    cdef public list refreshes
    cdef public list describers
    cdef public list timers
    cdef public list replies
    cdef public object response

    def __init__(self):
        self.records = []
        self.replayed = True
        self.changes = []
        self.retries = []
        self.replacements = []
        self.refreshes = []
        self.describers = []
        self.timers = []
        self.replies = []

    def schedule(self, str group_id not None, str kind not None, str member_id not None, delay_ms):
        self.timers.append((group_id, kind, member_id, delay_ms if delay_ms > 0 else 0, False))

    def schedule_if_absent(self, str group_id not None, str kind not None, str member_id not None, delay_ms):
        self.timers.append((group_id, kind, member_id, delay_ms if delay_ms > 0 else 0, True))

    def cancel(self, str group_id not None, str kind not None, str member_id not None=""):
        self.timers.append((group_id, kind, member_id, CANCEL, False))

    def reply(self, token, response):
        if token is not None:
            self.replies.append((token, response))
