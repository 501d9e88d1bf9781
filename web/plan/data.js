// The plan as `snug plan --html` embeds it, and what follows from it: bytes by role at each op. Draws nothing.

// "21.3 GiB": binary units, three or four digits, as the program prints them.
function formatBytes(bytes) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
  let value = bytes, unit = 0;
  while (value >= 1024 && unit + 1 < units.length) { value /= 1024; ++unit; }
  const digits = unit === 0 ? 0 : value < 10 ? 2 : value < 1000 ? 1 : 0;
  return value.toFixed(digits) + " " + units[unit];
}

// "2.3 ms": three digits.
function formatSeconds(seconds) {
  return seconds < 1 ? `${Number((1000 * seconds).toPrecision(3))} ms` : `${Number(seconds.toPrecision(3))} s`;
}

function readPlan(json) {
  const plan = JSON.parse(json);
  const count = plan.steps.point.length;
  const roles = plan.roles.concat("runtime");
  // live[role][step], the roles' sum at each step, and the step with the most.
  const live = roles.map(() => new Float64Array(count));
  plan.resident.forEach((s) => { for (let i = 0; i < count; ++i) live[s.role][i] += s.bytes; });
  live[roles.length - 1].fill(plan.runtime_bytes);
  const lives = plan.lives;
  const change = plan.roles.map(() => new Float64Array(count + 1)), moved = new Float64Array(count + 1);
  for (let i = 0; i < lives.storage.length; ++i) {
    const storage = plan.storages[lives.storage[i]], into = storage.away ? moved : change[storage.role];
    into[lives.birth[i]] += storage.bytes;
    into[lives.death[i] + 1] -= storage.bytes;
  }
  const away = new Float64Array(count);  // bytes that lie elsewhere at each step
  for (let i = 0, sum = plan.away.throughout; i < count; ++i) away[i] = sum += moved[i];
  const waits = new Map(plan.lanes.waiting.map((step, i) => [step, plan.lanes.seconds[i]]));
  change.forEach((c, role) => { for (let i = 0, sum = 0; i < count; ++i) live[role][i] += sum += c[i]; });
  const total = new Float64Array(count);
  for (let i = 0; i < count; ++i) for (const l of live) total[i] += l[i];
  let peak = 0;
  for (let i = 1; i < count; ++i) if (total[i] > total[peak]) peak = i;

  const groups = plan.groups.map((g) => ({name: g[0], stage: g[1], parent: g[2], first: g[3], last: g[4], kind: g[5]}));

  return {
    ...plan, count, roles, live, total, peak, groups, awayAt: away, waits,
    opName: (step) => plan.points[plan.steps.point[step]].replace("{}", plan.steps.layer[step]),
    path(step) {
      const names = [];
      for (let g = plan.steps.group[step]; g >= 0 && groups[g].parent >= 0; g = groups[g].parent) names.unshift(groups[g].name);
      return names.join(" › ");
    },
    // What is alive at a step, the instances of a storage together, largest first: {name, role, bytes, count}.
    alive(step) {
      const list = new Map();
      const add = (key, name, role, bytes) => {
        const entry = list.get(key) || {name, role, bytes: 0, count: 0};
        entry.bytes += bytes;
        ++entry.count;
        list.set(key, entry);
      };
      plan.resident.forEach((s, i) => add("r" + i, s.name, s.role, s.bytes));
      for (let i = 0; i < lives.storage.length && lives.birth[i] <= step; ++i) {
        if (lives.death[i] < step) continue;
        const storage = plan.storages[lives.storage[i]];
        if (!storage.away) add(lives.storage[i], storage.name, storage.role, storage.bytes);
      }
      add("runtime", "program, libraries, threads", roles.length - 1, plan.runtime_bytes);
      return [...list.values()].sort((a, b) => b.bytes - a.bytes);
    },
  };
}

const colourOf = (plan, role) => `var(--${plan.roles[role]})`;
