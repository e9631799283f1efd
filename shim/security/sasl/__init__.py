"""SASL on the server's side: one mechanism a file, the exchange of one connection, and the settings of a listener.

| File | Holds |
| --- | --- |
| `mechanism.py` | what a mechanism is, and its two kinds of failure |
| `plain.py`, `scram.py`, `oauthbearer.py` | the mechanisms |
| `tokens.py`, `unsecured_tokens.py` | what checks a token of OAUTHBEARER |
| `jaas.py` | login modules and their options, from an option or a JAAS file |
| `settings.py` | which mechanisms a listener has, each with its JAAS options |
| `authenticator.py` | the exchange of one connection, and its session's end |
"""
