"""What every emitter needs: templates, large arrays, folders written completely or not at all."""
