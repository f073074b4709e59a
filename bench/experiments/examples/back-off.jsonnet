// Which back-off gets the most out of a hot counter (Strudel, section 8.4).
[
  {
    extends: 'hot-counter',
    population: { sessions: 16 },
    phases: { warmup_s: 0.5, measure_s: 3 },
    retry: { back_off: { shape: shape, base_ms: base, cap_ms: 64 * base } },
  }
  for shape in ['constant', 'linear', 'exponential']
  for base in [0.25, 1, 4]
]
