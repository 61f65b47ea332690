// Keeps the pixels of an image where the picture finds them, under their digest. Python sends them once an image.
const KEPT_IMAGES = 32

export default function ({ data }) {
  const store = (globalThis.plumblinePixels ??= new Map())
  store.delete(data.digest)
  store.set(data.digest, data)
  while (store.size > KEPT_IMAGES) store.delete(store.keys().next().value)
  window.dispatchEvent(new CustomEvent("plumbline-pixels", { detail: data.digest }))
}
