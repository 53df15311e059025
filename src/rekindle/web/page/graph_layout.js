// Where the tasks of a job stand: in layers, from sources to sinks. Pure.

const SWEEPS = 4;

/** Layers of ids, and the way of each edge through them; a long edge has a place of its own in each layer it crosses. */
export function layered(ids, edges) {
  const level = levels(ids, edges);
  const layers = [];
  const put = (id, at) => (layers[at] ??= []).push(id);
  for (const id of ids) put(id, level.get(id));
  const ways = edges.map(({ source, target }, index) => {
    const way = [source];
    for (let at = level.get(source) + 1; at < level.get(target); at++) {
      const bend = `bend ${index} ${at}`;
      put(bend, at);
      way.push(bend);
    }
    return [...way, target];
  });
  return { layers: ordered(layers, ways), ways };
}

/** The longest way from a source to each task. */
function levels(ids, edges) {
  const level = new Map(ids.map((id) => [id, 0]));
  for (let round = 0; round < ids.length; round++) {
    let isChanged = false;
    for (const { source, target } of edges) {
      if (!level.has(source) || !level.has(target) || level.get(target) > level.get(source)) continue;
      level.set(target, level.get(source) + 1);
      isChanged = true;
    }
    if (!isChanged) break;
  }
  return level;
}

/** Put what belongs together side by side: each place goes to the middle of its neighbours, there and back. */
function ordered(layers, ways) {
  const pairs = ways.flatMap((way) => way.slice(1).map((id, index) => [way[index], id]));
  const neighbours = (id, side) => pairs.filter((pair) => pair[1 - side] === id).map((pair) => pair[side]);
  for (let sweep = 0; sweep < SWEEPS; sweep++) {
    const side = sweep % 2;
    const order = side === 0 ? [...layers.keys()] : [...layers.keys()].reverse();
    for (const at of order) {
      const beside = layers[side === 0 ? at - 1 : at + 1];
      if (!beside) continue;
      const middle = new Map(layers[at].map((id, index) => {
        const places = neighbours(id, side).map((each) => beside.indexOf(each)).filter((each) => each >= 0);
        return [id, places.length ? places.reduce((sum, each) => sum + each, 0) / places.length : index];
      }));
      layers[at] = [...layers[at]].sort((one, other) => middle.get(one) - middle.get(other));
    }
  }
  return layers;
}

/** Boxes and lines in pixels. `isDown`: layers below each other, for narrow screens. */
export function placed({ layers, ways }, { width, box, gap, isDown }) {
  const [full, deep] = isDown ? [box.width, box.height] : [box.height, box.width];
  const size = (id) => ({ across: id.startsWith("bend ") ? 12 : full, along: deep });
  const extent = (layer) => layer.reduce((sum, id) => sum + size(id).across + gap.across, -gap.across);
  const across = Math.max(...layers.map(extent), isDown ? Math.min(width, box.width) : 0);
  const step = deep + gap.along;
  const places = new Map();
  layers.forEach((layer, at) => {
    let offset = (across - extent(layer)) / 2;
    for (const id of layer) {
      const { across: own, along } = size(id);
      places.set(id, isDown
        ? { x: offset, y: at * step, width: own, height: along }
        : { x: at * step, y: offset, width: along, height: own });
      offset += own + gap.across;
    }
  });
  const along = layers.length * step - gap.along;
  const lines = ways.map((way) => line(way.map((id) => places.get(id)), isDown));
  return { places, lines, width: isDown ? across : along, height: isDown ? along : across };
}

/** A smooth line from box to box, through the middle of each bend; and where its label goes. */
function line(boxes, isDown) {
  const out = (box) =>
    (isDown ? [box.x + box.width / 2, box.y + box.height] : [box.x + box.width, box.y + box.height / 2]);
  const into = (box) => (isDown ? [box.x + box.width / 2, box.y] : [box.x, box.y + box.height / 2]);
  let path = `M${out(boxes[0])}`;
  for (let index = 1; index < boxes.length; index++) {
    const [fromX, fromY] = out(boxes[index - 1]);
    const [toX, toY] = into(boxes[index]);
    path += isDown
      ? `C${fromX} ${(fromY + toY) / 2} ${toX} ${(fromY + toY) / 2} ${toX} ${toY}`
      : `C${(fromX + toX) / 2} ${fromY} ${(fromX + toX) / 2} ${toY} ${toX} ${toY}`;
    if (index < boxes.length - 1) path += `L${out(boxes[index])}`;
  }
  const [x1, y1] = out(boxes[0]);
  const [x2, y2] = into(boxes[1]);
  return { path, label: [(x1 + x2) / 2, (y1 + y2) / 2] };
}
