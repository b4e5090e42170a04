"""The same requests to several daemons: where do they part?"""
