// Figure 7 of the Strudel paper: three scales, each on 5 and on 10 servers.
local hosts(n) = std.join(',', ['h%d' % i for i in std.range(1, n)]);
[
  {
    extends: ['redis', 'micro-personal'],
    store: { url: 'redis://' + hosts(servers) },
    population: { sessions: 100 * s.w },
    workload: { parameters: { users: s.u } },
  }
  for s in [{ w: 1, u: 10000 }, { w: 2, u: 20000 }, { w: 4, u: 40000 }]
  for servers in [5, 10]
]
