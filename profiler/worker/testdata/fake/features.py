def features():
    return {"ddp": True}
