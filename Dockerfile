# everynode on the CPU, with the command as the entry point:
#   docker build -t everynode .
#   docker run --rm --user "$(id -u):$(id -g)" --volume "$PWD:/work" everynode fit --nodes nodes.csv --edges edges.csv --label label
FROM python:3.12-slim AS build
WORKDIR /source
COPY pyproject.toml README.md LICENSE ./
COPY src ./src
RUN pip wheel --no-cache-dir --no-deps --wheel-dir /wheels .

FROM python:3.12-slim
LABEL org.opencontainers.image.title="everynode" \
      org.opencontainers.image.licenses="MIT"
COPY --from=build /wheels /wheels
# PyTorch's own index has the build without CUDA, which is 2 GB smaller.
RUN pip install --no-cache-dir "torch>=2.6" --index-url https://download.pytorch.org/whl/cpu \
    && pip install --no-cache-dir /wheels/*.whl \
    && rm -r /wheels
ENV OMP_NUM_THREADS=1 \
    NUMBA_CACHE_DIR=/tmp/numba \
    XDG_CACHE_HOME=/tmp/cache
WORKDIR /work
USER 65534
ENTRYPOINT ["everynode"]
CMD ["--help"]
