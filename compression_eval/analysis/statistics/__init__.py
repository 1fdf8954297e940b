"""Is a difference between two arms more than noise?"""
