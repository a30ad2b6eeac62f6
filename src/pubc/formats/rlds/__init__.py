"""RLDS datasets in TFDS folders of tfrecords."""
